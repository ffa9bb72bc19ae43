//! Store clients, set up from the variables that each provider's own tools read.

use super::address::{Address, Provider};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, resolve_bucket_region};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::{ClientConfigKey, ClientOptions, ObjectStore, Result, RetryConfig};
use std::env::var;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// A request is repeated so often …
const MAX_RETRIES: usize = 6;
/// … and for so long, so that a wrong address does not hang.
const RETRY_FOR: Duration = Duration::from_secs(20);
/// For all of a request. The client's own 30 s are too short for a few pieces at once on a slow
/// line. `AWS_TIMEOUT` and its like come before it.
const TIMEOUT: &str = "120s";
/// How long to ask which region a bucket is in.
const REGION_WITHIN: Duration = Duration::from_secs(5);

/// The client of an address. Without other credentials it asks for those of the machine's role.
pub fn open(address: &Address, runtime: &Runtime) -> Result<Arc<dyn ObjectStore>> {
    Ok(match address.provider {
        Provider::Amazon => Arc::new(amazon(address, runtime).build()?),
        Provider::Azure => Arc::new(azure(address).build()?),
        Provider::Google => Arc::new(google(address).build()?),
    })
}

fn retry() -> RetryConfig {
    RetryConfig { max_retries: MAX_RETRIES, retry_timeout: RETRY_FOR, ..RetryConfig::default() }
}

fn timeout(variable: &str) -> String {
    var(variable).unwrap_or_else(|_| TIMEOUT.to_owned())
}

fn amazon(address: &Address, runtime: &Runtime) -> AmazonS3Builder {
    let builder = AmazonS3Builder::from_env()
        .with_url(&address.root)
        .with_retry(retry())
        .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::Timeout), timeout("AWS_TIMEOUT"));
    let set = |key| builder.get_config_value(&key);
    match set(AmazonS3ConfigKey::S3Endpoint).or_else(|| set(AmazonS3ConfigKey::Endpoint)) {
        // Whoever writes http:// means it.
        Some(endpoint) if endpoint.starts_with("http://") => builder.with_allow_http(true),
        Some(_) => builder,
        None if set(AmazonS3ConfigKey::Region).is_some() => builder,
        None => match region(address, runtime) {
            Some(region) => builder.with_region(region),
            None => builder,
        },
    }
}

/// The region of a bucket, which anybody may ask for. `None` when an address names it, or when
/// nobody answers: the request that follows tells why.
fn region(address: &Address, runtime: &Runtime) -> Option<String> {
    let (scheme, bucket) = address.root.split_once("://")?;
    if scheme.eq_ignore_ascii_case("https") {
        return None;
    }
    let options = ClientOptions::new().with_timeout(REGION_WITHIN).with_connect_timeout(REGION_WITHIN);
    runtime.block_on(resolve_bucket_region(bucket, &options)).ok()
}

fn azure(address: &Address) -> MicrosoftAzureBuilder {
    let mut builder = MicrosoftAzureBuilder::from_env()
        .with_url(&address.root)
        .with_retry(retry())
        .with_config(AzureConfigKey::Client(ClientConfigKey::Timeout), timeout("AZURE_TIMEOUT"));
    // The names that the az command reads, beside the client's own.
    for (key, variable) in
        [(AzureConfigKey::AccountName, "AZURE_STORAGE_ACCOUNT"), (AzureConfigKey::AccessKey, "AZURE_STORAGE_KEY")]
    {
        if builder.get_config_value(&key).is_none()
            && let Ok(value) = var(variable)
        {
            builder = builder.with_config(key, value);
        }
    }
    match builder.get_config_value(&AzureConfigKey::Endpoint) {
        Some(endpoint) if endpoint.starts_with("http://") => builder.with_allow_http(true),
        _ => builder,
    }
}

fn google(address: &Address) -> GoogleCloudStorageBuilder {
    let builder = GoogleCloudStorageBuilder::from_env()
        .with_url(&address.root)
        .with_retry(retry())
        .with_config(GoogleConfigKey::Client(ClientConfigKey::Timeout), timeout("GOOGLE_TIMEOUT"));
    match var("STORAGE_EMULATOR_HOST") {
        // An emulator knows no credentials. Google's tools take its address with and without scheme.
        Ok(host) if builder.get_config_value(&GoogleConfigKey::BaseUrl).is_none() => {
            let host = host.trim_end_matches('/');
            let url = if host.contains("://") { host.to_owned() } else { format!("http://{host}") };
            builder.with_base_url(&url).with_skip_signature(true)
        }
        _ => builder,
    }
}
