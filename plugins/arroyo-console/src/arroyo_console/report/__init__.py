"""One run of a job as one file of HTML, to send to somebody."""
