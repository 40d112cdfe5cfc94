"""How policies and value networks are fitted; needs the extra [train]."""
