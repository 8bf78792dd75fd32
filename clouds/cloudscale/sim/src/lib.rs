//! A stateful double of the cloudscale.ch API whose load balancers carry real traffic.
