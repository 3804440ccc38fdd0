"""What the tests of formats share."""
