"""Workers that live on from epoch to epoch, and send frames to each other while an epoch runs."""
