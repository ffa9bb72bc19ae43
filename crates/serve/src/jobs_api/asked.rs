//! What a request asks, and who: its query and its body, as leniently as clients need it.

use super::ApiError;
use crate::guard::{Asking, Guard};
use crate::params::Params;
use axum::Extension;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The query, and the fields of a body, which some clients send with a GET. An empty `page_token=` is
/// none; what is not known is not looked at.
#[derive(Debug, Default)]
pub(super) struct Query {
    params: Params,
    base: String,
}

impl<S: Send + Sync> FromRequest<S> for Query {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let mut params = Params::of(request.uri().query());
        let base = base(request.headers());
        let Body(fields) = Body::from_request(request, state).await?;
        for (name, value) in fields {
            match value {
                Value::String(text) => params.add(name, text),
                Value::Number(_) | Value::Bool(_) => params.add(name, value.to_string()),
                _ => {}
            }
        }
        Ok(Self { params, base })
    }
}

impl Query {
    pub fn text(&self, name: &str) -> Option<&str> {
        self.params.get(name).filter(|value| !value.is_empty())
    }

    pub fn number(&self, name: &str) -> Result<Option<i64>, ApiError> {
        let number = |text: &str| text.parse().map_err(|_| ApiError::invalid(format!("{name} {text:?} is no number")));
        self.text(name).map(number).transpose()
    }

    pub fn id(&self, name: &str) -> Result<i64, ApiError> {
        self.number(name)?.ok_or_else(|| ApiError::invalid(format!("{name} is missing")))
    }

    /// `true`, `True` and the like.
    pub fn flag(&self, name: &str) -> Result<bool, ApiError> {
        match self.text(name).map(str::to_ascii_lowercase).as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(ApiError::invalid(format!("{name} must be true or false, not {other:?}"))),
        }
    }

    /// `http://HOST`, as the client reaches this server.
    pub fn base(&self) -> &str {
        &self.base
    }
}

/// The address at which a client reaches this server.
pub(super) fn base(headers: &HeaderMap) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let scheme = text("x-forwarded-proto").filter(|scheme| *scheme == "https").unwrap_or("http");
    format!("{scheme}://{}", text(header::HOST.as_str()).unwrap_or("localhost"))
}

/// Characters of the longest name in the audit log.
const LONGEST_OBJECT: usize = 200;

/// Who asks for a change.
#[derive(Debug)]
pub(super) struct By {
    asking: Asking,
    guard: Arc<Guard>,
}

impl<S: Send + Sync> FromRequestParts<S> for By {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let missing = |_| ApiError::internal("the request did not pass the guard");
        let Extension(asking) = Extension::from_request_parts(parts, state).await.map_err(missing)?;
        let Extension(guard) = Extension::from_request_parts(parts, state).await.map_err(missing)?;
        Ok(Self { asking, guard })
    }
}

impl By {
    /// Name of the token.
    pub fn who(&self) -> &str {
        &self.asking.who
    }

    /// Notes what is about to be done; what cannot be noted is not done.
    pub async fn audit(&self, what: &str, object: &str) -> Result<(), ApiError> {
        let object: String = object.chars().take(LONGEST_OBJECT).collect();
        self.guard.audit(&self.asking, what, &object, "asked").await.map_err(ApiError::internal)
    }
}

/// The body: a JSON object, whatever the request calls it. No body is an empty one.
#[derive(Debug, Default)]
pub(super) struct Body(pub Map<String, Value>);

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let bytes = Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(|error| ApiError::malformed(format!("the body cannot be read: {error}")))?;
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        match serde_json::from_slice(&bytes) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            Ok(_) => Err(ApiError::malformed("the body must be a JSON object")),
            Err(error) => Err(ApiError::malformed(format!("the body is no JSON: {error}"))),
        }
    }
}

impl Body {
    /// A number, which may come as a decimal text.
    pub fn number(&self, name: &str) -> Result<Option<i64>, ApiError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                let number = value.as_i64().or_else(|| value.as_str()?.parse().ok());
                number.map(Some).ok_or_else(|| wrong(name, "a whole number"))
            }
        }
    }

    pub fn id(&self, name: &str) -> Result<i64, ApiError> {
        self.number(name)?.ok_or_else(|| ApiError::invalid(format!("{name} is missing")))
    }

    pub fn text(&self, name: &str) -> Result<Option<String>, ApiError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
            Some(_) => Err(wrong(name, "a text")),
        }
    }

    pub fn flag(&self, name: &str) -> Result<bool, ApiError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(false),
            Some(value) => value.as_bool().ok_or_else(|| wrong(name, "true or false")),
        }
    }

    pub fn texts(&self, name: &str) -> Result<Option<Vec<String>>, ApiError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                let texts = value.as_array().map(|items| items.iter().map(|item| item.as_str().map(str::to_owned)));
                let texts = texts.and_then(Iterator::collect::<Option<Vec<_>>>);
                texts.map(Some).ok_or_else(|| wrong(name, "a list of texts"))
            }
        }
    }

    pub fn text_map(&self, name: &str) -> Result<BTreeMap<String, String>, ApiError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(BTreeMap::new()),
            Some(value) => {
                let pair = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
                let pairs = value.as_object().and_then(|fields| fields.iter().map(pair).collect());
                pairs.ok_or_else(|| wrong(name, "an object of texts"))
            }
        }
    }

    pub fn object(&self, name: &str) -> Result<Map<String, Value>, ApiError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(Map::new()),
            Some(Value::Object(fields)) => Ok(fields.clone()),
            Some(_) => Err(wrong(name, "an object")),
        }
    }
}

fn wrong(name: &str, wanted: &str) -> ApiError {
    ApiError::malformed(format!("{name} must be {wanted}"))
}
