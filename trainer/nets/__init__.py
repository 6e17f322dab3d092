"""Parts of networks: image encoders, action distributions."""
