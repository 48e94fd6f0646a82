"""The SVG kit: elements and colours, axes, line charts."""
