//! The client against recorded shapes of the API, over memory.

#[path = "api/answers.rs"]
mod answers;
#[path = "api/errors.rs"]
mod errors;
#[path = "api/jobs.rs"]
mod jobs;
#[path = "api/lists.rs"]
mod lists;
#[path = "api/live.rs"]
mod live;
#[path = "api/requests.rs"]
mod requests;
