"""What the sub-commands do, from source to folder."""
