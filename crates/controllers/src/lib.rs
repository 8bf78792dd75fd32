//! The control loops: node, node lifecycle, service, route.
