//! `queryAsyncJobResult`

use super::{Answer, Call};
use crate::error::ApiError;
use crate::options::Role;
use crate::wire;

impl Call<'_> {
    pub(super) fn query_job(&mut self) -> Answer {
        let id = self.params.required("jobid")?;
        let unknown = ApiError::unknown(&self.params.command, "jobid", id);
        self.state.note_poll(id);
        let job = self.state.jobs.get(id).ok_or(unknown)?;
        if self.caller.role != Role::Admin && job.order.account != self.caller.account {
            return Err(ApiError::permission(&self.caller.account, id));
        }
        Ok(wire::job(job))
    }
}
