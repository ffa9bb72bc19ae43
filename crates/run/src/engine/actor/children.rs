//! Runs that are the work of a run-job task.

use super::{AFTER_FAILURE, Actor, Origin, Refusal, RunNow};
use crate::book::{Act, Finished, Parent};
use crate::states::End;
use crate::step::Input;
use std::collections::BTreeMap;

impl Actor {
    /// The child of one task run is made once, whoever asks how often. A database that cannot be
    /// read now decides nothing: it is asked again.
    pub(super) async fn run_child(&mut self, parent: Parent, job_id: i64, parameters: BTreeMap<String, String>) {
        match self.child(parent, job_id, parameters.clone()).await {
            Ok(None) => {}
            Ok(Some(finished)) => self.child_ended(parent, finished),
            Err(Refusal::Store(error)) => {
                tracing::error!(%error, job_id, "the run of a run-job task cannot be made; trying again");
                tokio::time::sleep(AFTER_FAILURE).await;
                self.later.push_back(Act::RunJob { parent, job_id, parameters });
            }
            Err(refusal) => self.child_ended(parent, Finished::invalid(refusal)),
        }
    }

    fn child_ended(&mut self, parent: Parent, finished: Finished) {
        let (book, mut at) = self.now();
        book.finished(parent.run_id, parent.epoch, finished, &mut at);
    }

    /// Makes the child, or finds it; how the task ended, where that is known.
    async fn child(
        &mut self,
        parent: Parent,
        job_id: i64,
        parameters: BTreeMap<String, String>,
    ) -> Result<Option<Finished>, Refusal> {
        if !self.book.wants(parent) {
            return Ok(Some(Finished::of(End::CANCELED)));
        }
        if self.book.is_above(job_id, parent) {
            return Err(Refusal::State(format!("job {job_id} runs this task, so it would wait for itself")));
        }
        let token = Some(format!("task-run-{}-{}", parent.task_run_id, parent.epoch));
        let run = RunNow { job_id, parameters, token, ..RunNow::default() };
        let child = self.run_now(run, Origin::Task(parent)).await?.id;
        self.book.child(parent, child);
        if !self.book.is_open(child) {
            return self.ended_before(child).await.map(Some);
        }
        for input in [Input::Launched(parent.epoch), Input::Started(parent.epoch)] {
            let (book, mut at) = self.now();
            book.input(parent.run_id, input, &mut at);
        }
        Ok(None)
    }

    /// How a child ended that was over before its parent was taken up again, or was skipped.
    async fn ended_before(&self, child: i64) -> Result<Finished, Refusal> {
        // One that was skipped just now is not written yet.
        let Some(row) = self.jobs.run(child).await? else {
            let error = "the run of the other job was skipped: as many of its runs are active as may be";
            return Ok(Finished::because(End::FAILED, error));
        };
        Ok(match row.state.result.as_deref() {
            Some("SUCCESS" | "SUCCESS_WITH_FAILURES") => Finished::of(End::SUCCESS),
            _ => Finished::because(End::FAILED, row.state.message),
        })
    }
}
