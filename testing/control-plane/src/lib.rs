//! Builds and starts the real kube-apiserver and etcd for tests.
