"""One command a file: its options (`add`), what it does (`command`), its examples."""
