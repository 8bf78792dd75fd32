//! Process life: queues, leadership, health, metrics and shutdown.
