"""Text functions: normalising, tokens, URLs, hashes and masks of personal data."""
