"""How training frameworks are attached to the client, a module each; none is imported before it is asked for."""
