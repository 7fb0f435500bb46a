//! Attributes that the guest may read of its stream, in the ABI's encodings.

use super::stream::Stream;
use super::vm::Vm;

/// The value at `path`; `None` where Envoy has none.
pub fn get(vm: &Vm, context: u32, path: &[u8]) -> Option<Vec<u8>> {
    let path: Vec<&str> = std::str::from_utf8(path).ok()?.split('\0').collect();
    match path.as_slice() {
        ["plugin_name"] => Some(b"sluice".to_vec()),
        ["plugin_root_id"] => Some(b"sluice".to_vec()),
        ["plugin_vm_id"] => Some(vm.process.settings.vm_id.clone().into_bytes()),
        ["request", rest @ ..] => request(vm, vm.streams.get(&context)?, rest),
        ["response", rest @ ..] => response(vm.streams.get(&context)?, rest),
        ["connection", "id"] => Some(number(vm.process.connection(vm.streams.get(&context)?.exchange))),
        ["destination", "address"] => Some(b"127.0.0.1:10000".to_vec()),
        _ => None,
    }
}

fn request(vm: &Vm, stream: &Stream, path: &[&str]) -> Option<Vec<u8>> {
    let request = &stream.request;
    let header = |name: &str| request.headers.get(name).map(<[u8]>::to_vec);
    match path {
        ["method"] => header(":method"),
        ["path"] => header(":path"),
        ["host"] => header(":authority"),
        ["url_path"] => {
            header(":path").map(|path| path.split(|byte| *byte == b'?').next().unwrap_or_default().to_vec())
        }
        ["headers", name] => header(name),
        ["size"] => match header("content-length") {
            Some(length) => Some(number(std::str::from_utf8(&length).ok()?.parse().ok()?)),
            None => Some(number(request.received)),
        },
        ["total_size"] => Some(number(request.received + request.headers.byte_size())),
        ["duration"] if stream.ending => {
            Some((vm.process.clock.elapsed() - stream.since).to_le_bytes().to_vec())
        }
        _ => None,
    }
}

fn response(stream: &Stream, path: &[&str]) -> Option<Vec<u8>> {
    let response = &stream.response;
    match path {
        ["code"] if response.started => Some(number(response.status.into())),
        ["code_details"] if !response.details.is_empty() => Some(response.details.clone().into_bytes()),
        ["flags"] => Some(response.flags.to_le_bytes().to_vec()),
        ["size"] => Some(number(response.size)),
        ["total_size"] => Some(number(response.size + response.headers.byte_size())),
        ["headers", name] => response.headers.get(name).map(<[u8]>::to_vec),
        _ => None,
    }
}

fn number(value: usize) -> Vec<u8> {
    u64::try_from(value).expect("64 bits").to_le_bytes().to_vec()
}
