//! Traces of a server for an OpenTelemetry collector, when one is named: a span for each request
//! and, inside it, for opening an application and for reading a log.
//!
//! They go out in batches by a thread of their own. A collector that cannot be reached costs the
//! spans and one line in the log; nobody waits for it, but the end of the server for a moment.

use anyhow::{Context, Result, bail};
use opentelemetry::trace::TracerProvider;
use opentelemetry::{Key, KeyValue, global};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use reqwest::Url;
use reqwest::redirect::Policy;
use serve::SPANS;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;
use tracing::{Level, Span, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::registry::LookupSpan;

/// How long a collector may take for a batch.
const BATCH: Duration = Duration::from_secs(10);
/// How long the end of the server waits for the last batch.
const LAST_BATCH: Duration = Duration::from_secs(2);

/// The way to a collector.
#[derive(Debug)]
pub struct Traces(SdkTracerProvider);

impl Traces {
    /// Sends traces to a collector, by OTLP over HTTP; `endpoint` is its address, to which
    /// `/v1/traces` is added. `OTEL_SERVICE_NAME` and the other variables of OpenTelemetry that say
    /// what is sent, and how, are respected.
    ///
    /// # Errors
    /// When `endpoint` is no address of HTTP.
    pub fn to(endpoint: &str, runtime: &Handle) -> Result<Self> {
        let address = address(endpoint)?;
        let collector = Collector::at(&address, runtime)?;
        let exporter =
            SpanExporter::builder().with_http().with_http_client(collector).with_endpoint(String::from(address));
        let exporter = exporter.build().context("cannot send traces")?;
        global::set_text_map_propagator(TraceContextPropagator::new());
        Ok(Self(SdkTracerProvider::builder().with_resource(resource()).with_batch_exporter(exporter).build()))
    }

    /// What takes the spans.
    pub fn layer<S: Subscriber + for<'a> LookupSpan<'a>>(&self) -> impl Layer<S> + use<S> {
        let layer = tracing_opentelemetry::layer().with_tracer(self.0.tracer("lakescope"));
        let layer = layer.with_location(false).with_threads(false).with_tracked_inactivity(false).with_target(false);
        layer.with_filter(Targets::new().with_target(SPANS, Level::INFO))
    }

    /// Sends what is left.
    pub async fn end(self) {
        let sent = move || self.0.shutdown_with_timeout(LAST_BATCH);
        // What cannot be sent has been told.
        let _ = tokio::task::spawn_blocking(sent).await;
    }
}

fn address(endpoint: &str) -> Result<Url> {
    let mut address = Url::parse(endpoint).with_context(|| format!("--otlp-endpoint is no address: {endpoint:?}"))?;
    if !matches!(address.scheme(), "http" | "https") {
        bail!("--otlp-endpoint must begin with http:// or https://, not {}:", address.scheme());
    }
    let path = format!("{}/v1/traces", address.path().trim_end_matches('/'));
    address.set_path(&path);
    Ok(address)
}

/// What sends the spans: `lakescope`, unless the environment has another name.
fn resource() -> Resource {
    let name = Resource::builder().build().get(&Key::new("service.name"));
    let unnamed = name.is_none_or(|name| name.as_str().starts_with("unknown_service"));
    let resource = Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    if unnamed { resource.with_service_name("lakescope") } else { resource }.build()
}

/// A client that runs on the server's threads, whichever thread asks.
#[derive(Debug)]
struct Collector {
    client: reqwest::Client,
    runtime: Handle,
    host: String,
    told: Arc<AtomicBool>,
}

impl Collector {
    fn at(address: &Url, runtime: &Handle) -> Result<Self> {
        let client = reqwest::Client::builder().timeout(BATCH).redirect(Policy::none()).build();
        let client = client.context("cannot send traces")?;
        let host = address.host_str().unwrap_or_default().to_owned();
        Ok(Self { client, runtime: runtime.clone(), host, told: Arc::default() })
    }

    /// Tells once why nothing arrives; the address may hold a password.
    fn tell(&self, why: &str) {
        if !self.told.swap(true, Ordering::Relaxed) {
            tracing::warn!("traces do not reach {}: {why}", self.host);
        }
    }
}

type Sent<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for Collector {
    fn send_bytes<'s: 'a, 'a>(&'s self, request: Request<Bytes>) -> Sent<'a>
    where
        Self: 'a,
    {
        Box::pin(async move {
            let sent = self.runtime.spawn(send(self.client.clone(), request)).await?;
            match &sent {
                Ok(answer) if answer.status().is_success() => {}
                Ok(answer) => self.tell(&answer.status().to_string()),
                Err(error) => self.tell(&error.to_string()),
            }
            sent
        })
    }
}

async fn send(client: reqwest::Client, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let answer = client.execute(request.try_into()?).await.map_err(reqwest::Error::without_url)?;
    let status = answer.status();
    Ok(Response::builder().status(status).body(answer.bytes().await?)?)
}

/// Runs inside a span, whose status says whether it failed.
pub fn inside<T, E>(span: &Span, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let done = span.in_scope(work);
    if done.is_err() {
        span.record("otel.status_code", "ERROR");
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_the_root_of_a_collector() {
        for (endpoint, sent_to) in [
            ("http://127.0.0.1:4318", Some("http://127.0.0.1:4318/v1/traces")),
            ("https://otel.example/", Some("https://otel.example/v1/traces")),
            ("http://otel.example/team/", Some("http://otel.example/team/v1/traces")),
            ("otel.example:4318", None),
            ("grpc://otel.example", None),
            ("", None),
        ] {
            assert_eq!(address(endpoint).ok().as_ref().map(Url::as_str), sent_to, "{endpoint}");
        }
    }
}
