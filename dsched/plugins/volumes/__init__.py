"""What the plugins about volumes share: claims, volumes, attachments, and which pods use them."""
