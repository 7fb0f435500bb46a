//! What cannot be read is not let through unread.

use super::words::{CHAT, exchange, refused, short, still_serves};
use super::{Request, World};

pub fn an_encoded_body_is_refused(world: &mut dyn World) {
    for encoding in ["gzip", "zstd", "identity, br", "GZIP"] {
        refused(world, &short().header("content-encoding", encoding)).refused(415, "unsupported_encoding");
    }
    still_serves(world);
}

pub fn identity_is_no_encoding(world: &mut dyn World) {
    exchange(world, &short().header("content-encoding", "identity"));
    exchange(world, &short().header("content-encoding", "Identity"));
}

pub fn multipart_is_refused(world: &mut dyn World) {
    let kind = "multipart/form-data; boundary=b";
    refused(world, &short().header("content-type", kind)).refused(415, "unsupported_type");
    still_serves(world);
}

/// Envoy puts a refusal into gRPC's own shape; the headers stay.
pub fn grpc_is_refused(world: &mut dyn World) {
    for kind in ["application/grpc", "application/grpc+proto"] {
        let response = refused(world, &short().header("content-type", kind).http2());
        assert_eq!(response.header("x-sluice-reason"), Some("unsupported_type"));
    }
    still_serves(world);
}

pub fn an_upgrade_is_refused(world: &mut dyn World) {
    for request in [short(), Request::get(CHAT)] {
        let request = request.header("connection", "upgrade").header("upgrade", "websocket");
        refused(world, &request).refused(400, "unsupported_upgrade");
    }
    still_serves(world);
}

pub fn an_offer_of_h2c_is_ignored(world: &mut dyn World) {
    let request = short()
        .header("connection", "upgrade, http2-settings")
        .header("upgrade", "h2c")
        .header("http2-settings", "AAMAAABkAAQAAP__");
    exchange(world, &request);
}

pub fn any_other_content_type_is_read_as_json(world: &mut dyn World) {
    for kind in
        ["text/plain", "application/x-www-form-urlencoded", "application/problem+json; charset=utf-8", ""]
    {
        let (_, response) = exchange(world, &short().header("content-type", kind));
        assert_eq!(response.header("x-sluice-class"), Some("short"), "{kind}");
    }
}
