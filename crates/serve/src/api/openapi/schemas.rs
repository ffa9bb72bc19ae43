//! What the document says of values, where the types alone do not tell.

use std::collections::BTreeMap;
use utoipa::openapi::schema::{AllOf, Object, SchemaType};
use utoipa::openapi::{RefOr, Schema, Type};

type Schemas = BTreeMap<String, RefOr<Schema>>;

/// Writes flattened fields where they stand, and says which fields are always there.
pub(super) fn finish(schemas: &mut Schemas) {
    let all = schemas.clone();
    for schema in schemas.values_mut() {
        let RefOr::T(schema) = schema else { continue };
        if let Schema::AllOf(parts) = schema {
            *schema = Schema::Object(joined(parts, &all));
        }
        if let Schema::Object(object) = schema {
            require(object);
        }
    }
}

/// One object of all fields.
fn joined(parts: &AllOf, all: &Schemas) -> Object {
    let mut whole = Object::new();
    whole.description = parts.description.clone();
    // Its own fields come first.
    let (own, flattened): (Vec<_>, Vec<_>) = parts.items.iter().partition(|part| matches!(part, RefOr::T(_)));
    for part in own.into_iter().chain(flattened) {
        let found = match part {
            RefOr::T(schema) => Some(schema),
            RefOr::Ref(to) => to.ref_location.rsplit('/').next().and_then(|name| match all.get(name)? {
                RefOr::T(schema) => Some(schema),
                RefOr::Ref(_) => None,
            }),
        };
        let Some(Schema::Object(object)) = found else { continue };
        whole.properties.extend(object.properties.clone());
        whole.required.extend(object.required.clone());
    }
    whole
}

/// What may be null is not left out instead.
fn require(object: &mut Object) {
    let nullable = object.properties.iter().filter(|(_, schema)| may_be_null(schema));
    let more: Vec<String> = nullable.map(|(name, _)| name.clone()).collect();
    object.required.extend(more);
    let place = |name: &String| object.properties.keys().position(|key| key == name);
    object.required.sort_by_key(place);
    object.required.dedup();
}

fn may_be_null(schema: &RefOr<Schema>) -> bool {
    let holds_null = |kind: &SchemaType| match kind {
        SchemaType::Type(kind) => *kind == Type::Null,
        SchemaType::Array(kinds) => kinds.contains(&Type::Null),
        SchemaType::AnyValue => false,
    };
    match schema {
        RefOr::T(Schema::Object(object)) => holds_null(&object.schema_type),
        RefOr::T(Schema::Array(array)) => holds_null(&array.schema_type),
        RefOr::T(Schema::OneOf(choice)) => choice.items.iter().any(may_be_null),
        _ => false,
    }
}
