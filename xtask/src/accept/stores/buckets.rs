//! A bucket on each provider's server: filled with the client that lakescope reads with, and the
//! variables and troubles that are the provider's own.

use super::servers::{self, Server, Started};
use super::{Failure, Files};
use anyhow::{Context, Result, bail};
use object_store::aws::{AmazonS3Builder, AwsAuthorizer, AwsCredential};
use object_store::azure::{AzureAccessKey, AzureAuthorizer, AzureCredential, MicrosoftAzureBuilder};
use object_store::client::{HttpConnector, HttpRequest, HttpRequestBody, ReqwestConnector};
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStore, ObjectStoreExt};
use tokio::runtime::Runtime;

/// Variables by name.
type Variables = Vec<(&'static str, String)>;

/// A filled bucket on a running server.
pub struct Store {
    pub name: &'static str,
    /// `s3://bucket`
    pub root: String,
    pub variables: Variables,
    /// Other ways that must give the same: what, root, variables that differ.
    pub also: Vec<(&'static str, String, Variables)>,
    pub failures: Vec<Failure>,
    /// The variable that leads to the server, and what it holds behind the port.
    endpoint: (&'static str, &'static str),
    pub server: Server,
}

impl Store {
    /// The variable that leads to another port.
    pub fn at_port(&self, port: u16) -> Variables {
        let (variable, path) = self.endpoint;
        vec![(variable, format!("http://127.0.0.1:{port}{path}"))]
    }
}

/// Starts a server and fills its buckets; else says why it cannot be had.
type Prepare = fn(&Runtime, &Files) -> Result<std::result::Result<Store, String>>;

/// The providers.
pub const ALL: [(&str, Prepare); 3] = [("s3", s3), ("azure", azure), ("gs", google)];

const ACCESS: &str = "lakescope";
const SECRET: &str = "a secret of this test";
/// Not the client's default, so that what is signed shows.
const REGION: &str = "eu-central-1";
/// The account and key that Azurite is known to have.
const ACCOUNT: &str = "devstoreaccount1";
const ACCOUNT_KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

fn s3(runtime: &Runtime, files: &Files) -> Result<std::result::Result<Store, String>> {
    let server = match servers::s3(ACCESS, SECRET, REGION, &["logs", "public"])? {
        Started::Running(server) => server,
        Started::Absent(why) => return Ok(Err(why)),
    };
    let url = server.url();
    for bucket in ["logs", "public"] {
        let builder = AmazonS3Builder::new().with_endpoint(&url).with_allow_http(true).with_region(REGION);
        let client =
            builder.with_bucket_name(bucket).with_access_key_id(ACCESS).with_secret_access_key(SECRET).build()?;
        fill(runtime, &client, files)?;
    }
    let policy = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*",
        "Action":["s3:GetObject","s3:ListBucket"],"Resource":["arn:aws:s3:::public","arn:aws:s3:::public/*"]}]}"#;
    runtime.block_on(signed_put(&format!("{url}/public?policy="), policy))?;
    // What Hadoop's client leaves for a folder.
    runtime.block_on(signed_put(&format!("{url}/logs/rolling/eventlog_v2_app-1/"), ""))?;
    let variables = vec![
        ("AWS_ENDPOINT_URL", url.clone()),
        ("AWS_ACCESS_KEY_ID", ACCESS.to_owned()),
        ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
        ("AWS_REGION", REGION.to_owned()),
    ];
    let (root, endpoint) = ("s3://logs".to_owned(), ("AWS_ENDPOINT_URL", ""));
    let (also, failures) = (s3_also(&url), s3_failures(servers::free_port()?));
    Ok(Ok(Store { name: "s3", root, variables, also, failures, endpoint, server }))
}

const NO_KEYS: [(&str, String); 2] = [("AWS_ACCESS_KEY_ID", String::new()), ("AWS_SECRET_ACCESS_KEY", String::new())];

fn s3_also(url: &str) -> Vec<(&'static str, String, Variables)> {
    let mut anonymous = Variables::from(NO_KEYS);
    anonymous.push(("AWS_SKIP_SIGNATURE", "true".to_owned()));
    let own = vec![("AWS_ENDPOINT_URL", String::new()), ("AWS_ENDPOINT_URL_S3", url.to_owned())];
    let default = vec![("AWS_REGION", String::new()), ("AWS_DEFAULT_REGION", REGION.to_owned())];
    let allowed = vec![("AWS_ALLOW_HTTP", "true".to_owned())];
    vec![
        ("a public bucket", "s3://public".to_owned(), anonymous),
        ("s3a://", "s3a://logs".to_owned(), vec![]),
        ("AWS_ENDPOINT_URL_S3", "s3://logs".to_owned(), own),
        ("AWS_DEFAULT_REGION", "s3://logs".to_owned(), default),
        ("AWS_ALLOW_HTTP", "s3://logs".to_owned(), allowed),
    ]
}

fn s3_failures(nobody: u16) -> Vec<Failure> {
    let fail =
        |what, root: &str, variables, says| Failure { what, root: root.to_owned(), path: "apps", variables, says };
    let mut no_role = Variables::from(NO_KEYS);
    no_role.push(("AWS_METADATA_ENDPOINT", format!("http://127.0.0.1:{nobody}")));
    let mut unsigned = Variables::from(NO_KEYS);
    unsigned.push(("AWS_SKIP_SIGNATURE", "true".to_owned()));
    let wrong = vec![("AWS_SECRET_ACCESS_KEY", "another".to_owned())];
    let elsewhere = vec![("AWS_REGION", "us-west-2".to_owned())];
    vec![
        fail("no bucket", "s3://none", vec![], &["NoSuchBucket", "check the name in s3://none"]),
        fail("wrong secret", "s3://logs", wrong, &["SignatureDoesNotMatch", "AWS_SECRET_ACCESS_KEY"]),
        fail("not public", "s3://logs", unsigned, &["access is denied", "check "]),
        fail("no credentials", "s3://logs", no_role, &["no credentials", "aws configure export-credentials"]),
        fail("another region", "s3://logs", elsewhere, &["another region", "AWS_REGION"]),
    ]
}

async fn signed_put(url: &str, body: &'static str) -> Result<()> {
    let credential = AwsCredential { key_id: ACCESS.to_owned(), secret_key: SECRET.to_owned(), token: None };
    let mut request = request("PUT", url, body)?;
    AwsAuthorizer::new(&credential, "s3", REGION).authorize(&mut request, None);
    send(request).await
}

fn azure(runtime: &Runtime, files: &Files) -> Result<std::result::Result<Store, String>> {
    let server = match servers::azure()? {
        Started::Running(server) => server,
        Started::Absent(why) => return Ok(Err(why)),
    };
    let account = format!("{}/{ACCOUNT}", server.url());
    for (container, access) in [("logs", None), ("public", Some("container"))] {
        runtime.block_on(container_put(&format!("{account}/{container}?restype=container"), access))?;
        let builder =
            MicrosoftAzureBuilder::new().with_allow_http(true).with_account(ACCOUNT).with_endpoint(account.clone());
        fill(runtime, &builder.with_access_key(ACCOUNT_KEY).with_container_name(container).build()?, files)?;
    }
    let variables = vec![
        ("AZURE_STORAGE_ENDPOINT", account.clone()),
        ("AZURE_STORAGE_ACCOUNT", ACCOUNT.to_owned()),
        ("AZURE_STORAGE_KEY", ACCOUNT_KEY.to_owned()),
    ];
    let (root, endpoint) = ("abfss://logs".to_owned(), ("AZURE_STORAGE_ENDPOINT", "/devstoreaccount1"));
    let (also, failures) = (azure_also(&server.url()), azure_failures(servers::free_port()?));
    Ok(Ok(Store { name: "azure", root, variables, also, failures, endpoint, server }))
}

fn azure_also(url: &str) -> Vec<(&'static str, String, Variables)> {
    let long = "abfss://logs@devstoreaccount1.dfs.core.windows.net".to_owned();
    let no_account = vec![("AZURE_STORAGE_ACCOUNT", String::new())];
    let client_names = vec![
        ("AZURE_STORAGE_ACCOUNT", String::new()),
        ("AZURE_STORAGE_KEY", String::new()),
        ("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT.to_owned()),
        ("AZURE_STORAGE_ACCOUNT_KEY", ACCOUNT_KEY.to_owned()),
    ];
    let emulator = vec![
        ("AZURE_STORAGE_ENDPOINT", String::new()),
        ("AZURE_STORAGE_USE_EMULATOR", "true".to_owned()),
        ("AZURITE_BLOB_STORAGE_URL", url.to_owned()),
    ];
    let anonymous = vec![("AZURE_STORAGE_KEY", String::new()), ("AZURE_SKIP_SIGNATURE", "true".to_owned())];
    vec![
        ("the account in the address", long, no_account),
        ("the client's own names", "az://logs".to_owned(), client_names),
        ("the emulator's variables", "abfs://logs".to_owned(), emulator),
        ("a public container", "abfss://public".to_owned(), anonymous),
    ]
}

fn azure_failures(nobody: u16) -> Vec<Failure> {
    let fail =
        |what, root: &str, variables, says| Failure { what, root: root.to_owned(), path: "apps", variables, says };
    let wrong = vec![("AZURE_STORAGE_KEY", "d3Jvbmc=".to_owned())];
    let no_account = vec![("AZURE_STORAGE_ACCOUNT", String::new())];
    let no_role = vec![
        ("AZURE_STORAGE_KEY", String::new()),
        ("AZURE_MSI_ENDPOINT", format!("http://127.0.0.1:{nobody}/metadata/identity/oauth2/token")),
    ];
    vec![
        fail("no container", "abfss://none", vec![], &["ContainerNotFound", "check the name in abfss://none"]),
        fail("wrong key", "abfss://logs", wrong, &["access is denied", "AZURE_STORAGE_KEY"]),
        fail("no account", "abfss://logs", no_account, &["Account must be specified", "AZURE_STORAGE_ACCOUNT"]),
        fail("no credentials", "abfss://logs", no_role, &["no credentials", "AZURE_USE_AZURE_CLI=true"]),
    ]
}

async fn container_put(url: &str, public: Option<&str>) -> Result<()> {
    let mut request = request("PUT", url, "")?;
    if let Some(access) = public {
        request.headers_mut().insert("x-ms-blob-public-access", access.parse()?);
    }
    let credential = AzureCredential::AccessKey(AzureAccessKey::try_new(ACCOUNT_KEY)?);
    AzureAuthorizer::new(&credential, ACCOUNT).authorize(&mut request);
    send(request).await
}

fn google(runtime: &Runtime, files: &Files) -> Result<std::result::Result<Store, String>> {
    let server = match servers::google()? {
        Started::Running(server) => server,
        Started::Absent(why) => return Ok(Err(why)),
    };
    let url = server.url();
    let mut create = request("POST", &format!("{url}/storage/v1/b"), r#"{"name":"logs"}"#)?;
    create.headers_mut().insert("content-type", "application/json".parse()?);
    runtime.block_on(send(create))?;
    // The server takes uploads in the JSON protocol only, which the client does not speak.
    let put = |name: &str, bytes| {
        let to = format!("{url}/upload/storage/v1/b/logs/o?uploadType=media&name={}", encoded(name));
        runtime.block_on(send(request("POST", &to, bytes)?)).with_context(|| format!("cannot put {name}"))
    };
    for (name, bytes) in files.all() {
        put(name, bytes?)?;
    }
    put("rolling/eventlog_v2_app-1/", Vec::new())?;
    let variables = vec![("STORAGE_EMULATOR_HOST", url.clone())];
    let (root, endpoint) = ("gs://logs".to_owned(), ("STORAGE_EMULATOR_HOST", ""));
    let (also, failures) = (google_also(&url), google_failures(&url, servers::free_port()?));
    Ok(Ok(Store { name: "gs", root, variables, also, failures, endpoint, server }))
}

fn google_also(url: &str) -> Vec<(&'static str, String, Variables)> {
    let bare = url.trim_start_matches("http://").to_owned();
    let key = r#"{"private_key":"","private_key_id":"","client_email":"","disable_oauth":true}"#;
    let account = vec![
        ("STORAGE_EMULATOR_HOST", String::new()),
        ("GOOGLE_BASE_URL", url.to_owned()),
        ("GOOGLE_SERVICE_ACCOUNT_KEY", key.to_owned()),
    ];
    let anonymous = vec![
        ("STORAGE_EMULATOR_HOST", String::new()),
        ("GOOGLE_BASE_URL", url.to_owned()),
        ("GOOGLE_SKIP_SIGNATURE", "true".to_owned()),
    ];
    vec![
        ("a host without scheme", "gs://logs".to_owned(), vec![("STORAGE_EMULATOR_HOST", bare)]),
        ("a service account", "gs://logs".to_owned(), account),
        ("no signature", "gs://logs".to_owned(), anonymous),
    ]
}

fn google_failures(url: &str, nobody: u16) -> Vec<Failure> {
    let fail =
        |what, root: &str, variables, says| Failure { what, root: root.to_owned(), path: "apps", variables, says };
    let nobody = format!("127.0.0.1:{nobody}");
    let no_role = vec![
        ("STORAGE_EMULATOR_HOST", String::new()),
        ("GOOGLE_BASE_URL", url.to_owned()),
        ("GCE_METADATA_HOST", nobody.clone()),
        ("GCE_METADATA_IP", nobody),
    ];
    let no_file = vec![("GOOGLE_APPLICATION_CREDENTIALS", "/nonexistent/key.json".to_owned())];
    vec![
        fail("no credentials", "gs://logs", no_role, &["no credentials", "gcloud auth application-default login"]),
        fail("no key file", "gs://logs", no_file, &["/nonexistent/key.json", "GOOGLE_APPLICATION_CREDENTIALS"]),
    ]
}

/// Puts the files into a bucket under names that stand as they are.
fn fill(runtime: &Runtime, client: &dyn ObjectStore, files: &Files) -> Result<()> {
    for (name, bytes) in files.all() {
        let path = Path::parse(name)?;
        runtime.block_on(client.put(&path, bytes?.into())).with_context(|| format!("cannot put {name}"))?;
    }
    Ok(())
}

fn encoded(name: &str) -> String {
    name.bytes()
        .map(|b| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") })
        .collect()
}

fn request(method: &str, url: &str, body: impl Into<Vec<u8>>) -> Result<HttpRequest> {
    let body = body.into();
    let length = body.len().to_string();
    let mut request = HttpRequest::new(HttpRequestBody::from(body));
    *request.method_mut() = method.parse()?;
    *request.uri_mut() = url.parse()?;
    request.headers_mut().insert("content-length", length.parse()?);
    Ok(request)
}

async fn send(request: HttpRequest) -> Result<()> {
    let what = format!("{} {}", request.method(), request.uri());
    let client = ReqwestConnector::default().connect(&ClientOptions::new().with_allow_http(true))?;
    let answer = client.execute(request).await.with_context(|| what.clone())?;
    if !answer.status().is_success() {
        let status = answer.status();
        bail!("{what}: {status} {}", String::from_utf8_lossy(&answer.into_body().bytes().await.unwrap_or_default()));
    }
    Ok(())
}
