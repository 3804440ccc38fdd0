"""Settings of all tests: a busy machine must not fail a property for being slow."""

from hypothesis import settings

settings.register_profile("arroyo", deadline=None, print_blob=True)
settings.load_profile("arroyo")
