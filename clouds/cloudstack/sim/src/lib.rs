//! A stateful double of the Apache CloudStack API whose load balancer rules carry real traffic.
