"""Who may ask the server, and for what: tokens, sessions, roles, and checks against other sites."""
