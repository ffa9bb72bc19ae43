//! The document as it is sent. The report comes in here, because utoipa's types cannot hold all of
//! its schema.

use super::shapes;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::openapi::path::Paths;
use utoipa::openapi::security::{SecurityRequirement, SecurityScheme};
use utoipa::openapi::tag::Tag;
use utoipa::openapi::{Components, Info, OpenApi, OpenApiVersion, RefOr, Response, Schema, Server};

#[derive(Serialize)]
struct Written<'a> {
    openapi: &'a OpenApiVersion,
    info: &'a Info,
    servers: &'a Option<Vec<Server>>,
    security: &'a Option<Vec<SecurityRequirement>>,
    tags: &'a Option<Vec<Tag>>,
    paths: &'a Paths,
    components: Option<Parts<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Parts<'a> {
    schemas: BTreeMap<String, Described<'a>>,
    responses: &'a BTreeMap<String, RefOr<Response>>,
    security_schemes: &'a BTreeMap<String, RefOr<SecurityScheme>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Described<'a> {
    Here(&'a RefOr<Schema>),
    OfReport(Value),
}

/// The document as indented JSON.
pub(super) fn text(document: &OpenApi) -> String {
    let OpenApi { openapi, info, servers, security, tags, paths, components, .. } = document;
    let components = components.as_ref().map(parts);
    let written = Written { openapi, info, servers, security, tags, paths, components };
    serde_json::to_string_pretty(&written).unwrap_or_default() + "\n"
}

fn parts(components: &Components) -> Parts<'_> {
    let here = components.schemas.iter().map(|(name, schema)| (name.clone(), Described::Here(schema)));
    let of_report = shapes::report().into_iter().map(|(name, schema)| (name, Described::OfReport(schema)));
    Parts {
        schemas: here.chain(of_report).collect(),
        responses: &components.responses,
        security_schemes: &components.security_schemes,
    }
}
