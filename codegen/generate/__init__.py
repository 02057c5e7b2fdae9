"""From descriptions to headers, instance sources, manifest and build rules."""
