//! The program against a real kube-apiserver, for what only that can prove: its validation, its patches, its RBAC.
//!
//! Where the servers are not built, each test says what it left out; in continuous integration that is a failure.

mod beside;
mod cloudscale;
mod cloudstack;
mod deaths;
mod failover;
mod installed;
mod life;
mod openstack;
mod phoenixnap;
mod plane;
mod rbac;
mod routes;
mod scenarios;
mod serving;
mod site;
