from hypothesis import settings

# Two cores, shared: the time of an example says nothing.
settings.register_profile("shared", deadline=None, max_examples=60)
settings.load_profile("shared")
