//! The policies on the real kube-apiserver. Needs the built programs; says so when they are missing.

mod apiserver;
mod cases;
mod examples;
mod generated;
mod updates;
mod values;
