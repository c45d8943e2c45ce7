"""How dates are written where Django does it unlike people."""
