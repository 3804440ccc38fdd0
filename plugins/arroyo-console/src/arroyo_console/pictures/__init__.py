"""Pictures as SVG in the page: they take their colours from its style sheet, and all their texts are escaped."""
