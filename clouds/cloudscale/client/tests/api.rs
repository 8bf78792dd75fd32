//! The client against recorded shapes of the API, over memory.

#[path = "api/answers.rs"]
mod answers;
#[path = "api/errors.rs"]
mod errors;
#[path = "api/requests.rs"]
mod requests;
#[path = "api/wire.rs"]
mod wire;
