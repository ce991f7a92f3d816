"""A method in Flower: `init` writes the app, `server` and `client` are its two sides, `wire` is what goes between."""
