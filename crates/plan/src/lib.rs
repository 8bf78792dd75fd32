//! Plans as data: steps, lanes, impact, prediction, the keyed diff and their rendering.
