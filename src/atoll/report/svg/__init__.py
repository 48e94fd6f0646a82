"""What all SVG pictures are made of."""
