"""What the tests of this distribution share."""
