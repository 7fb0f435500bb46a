//! Header and trailer maps.

use super::{Status, bytes, give_found, host, note, text};
use crate::harness::headers::Headers;
use crate::harness::vm;

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_get_header_map_pairs(kind: u32, data: *mut *mut u8, size: *mut usize) -> Status {
    note("proxy_get_header_map_pairs");
    let found = vm::try_with(|vm| {
        // A map that is not there reads as an empty one.
        let stream = vm.streams.get(&vm.context());
        stream
            .and_then(|stream| stream.map(kind))
            .map_or_else(|| Headers::default().encode(), Headers::encode)
    });
    unsafe { give_found(found.map(Ok), data, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_set_header_map_pairs(kind: u32, data: *const u8, size: usize) -> Status {
    note("proxy_set_header_map_pairs");
    let Some(new) = Headers::decode(&unsafe { bytes(data, size) }) else { return Status::BadArgument };
    change_map(kind, |headers| *headers = new)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_get_header_map_value(
    kind: u32,
    key: *const u8,
    key_size: usize,
    data: *mut *mut u8,
    size: *mut usize,
) -> Status {
    note("proxy_get_header_map_value");
    let key = unsafe { text(key, key_size) };
    let found = vm::try_with(|vm| {
        let stream = vm.streams.get(&vm.context()).ok_or(Status::BadArgument)?;
        let absent = if stream.logging { Status::NotFound } else { Status::BadArgument };
        let headers = stream.map(kind).ok_or(absent)?;
        headers.get(&key).map(<[u8]>::to_vec).ok_or(Status::NotFound)
    });
    unsafe { give_found(found, data, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_remove_header_map_value(kind: u32, key: *const u8, key_size: usize) -> Status {
    note("proxy_remove_header_map_value");
    let key = unsafe { text(key, key_size) };
    change_map(kind, |headers| headers.remove(&key))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_replace_header_map_value(
    kind: u32,
    key: *const u8,
    key_size: usize,
    data: *const u8,
    size: usize,
) -> Status {
    note("proxy_replace_header_map_value");
    let (key, value) = unsafe { (text(key, key_size), bytes(data, size)) };
    change_map(kind, |headers| headers.set(&key, value))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_add_header_map_value(
    kind: u32,
    key: *const u8,
    key_size: usize,
    data: *const u8,
    size: usize,
) -> Status {
    note("proxy_add_header_map_value");
    let (key, value) = unsafe { (text(key, key_size), bytes(data, size)) };
    change_map(kind, |headers| headers.add(&key, value))
}

fn change_map(kind: u32, change: impl FnOnce(&mut Headers)) -> Status {
    host(|vm| {
        let context = vm.context();
        match vm.streams.get_mut(&context).and_then(|stream| stream.map_mut(kind)) {
            Some(headers) => change(headers),
            None => return Status::BadArgument,
        }
        Status::Ok
    })
}
