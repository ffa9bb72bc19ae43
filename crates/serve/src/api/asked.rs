//! What a request asks about: an application, a stage of it, a query of it.

use super::failure::Failure;
use super::{Answer, open, waiting};
use crate::params::Params;
use crate::{History, Opened};
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use utoipa::IntoParams;

/// Parts of the address; one that should be a number and is none makes it no address of this API.
pub(super) struct At<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for At<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let found = Path::<T>::from_request_parts(parts, state).await;
        found.map(|Path(found)| Self(found)).map_err(|_| Failure::no_such_path())
    }
}

/// A stage attempt.
#[derive(Clone, Copy, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct StageOf {
    /// Id of the stage.
    pub stage: u32,
    /// Attempt of the stage; 0 is the first.
    pub stage_attempt: u32,
}

/// A query.
#[derive(Clone, Copy, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct QueryOf {
    /// Id of the SQL execution.
    pub execution: i64,
}

/// An application, and the query parameters of the request.
pub(super) struct Asked {
    history: Arc<dyn History>,
    of: Of,
    params: Params,
}

#[derive(Deserialize)]
struct Of {
    id: String,
    attempt: Option<String>,
}

impl FromRequestParts<Arc<dyn History>> for Asked {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, history: &Arc<dyn History>) -> Result<Self, Failure> {
        let At(of) = At::from_request_parts(parts, history).await?;
        Ok(Self { history: Arc::clone(history), of, params: Params::of(parts.uri.query()) })
    }
}

impl Asked {
    /// Opens the application and answers from it, on a thread that may wait.
    pub async fn answer(
        self,
        answer: impl FnOnce(&dyn History, &Opened, &Params) -> Answer + Send + 'static,
    ) -> Answer {
        waiting(move || {
            let opened = open(&*self.history, &self.of.id, self.of.attempt.as_deref())?;
            answer(&*self.history, &opened, &self.params)
        })
        .await
    }
}
