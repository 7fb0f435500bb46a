//! Attributes read, filter state written.

use super::{Status, bytes, give_found, host, note, text};
use crate::harness::{property, vm};

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_get_property(
    path: *const u8,
    path_size: usize,
    data: *mut *mut u8,
    size: *mut usize,
) -> Status {
    note("proxy_get_property");
    let path = unsafe { bytes(path, path_size) };
    let found = vm::try_with(|vm| property::get(vm, vm.context(), &path).ok_or(Status::NotFound));
    unsafe { give_found(found, data, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn proxy_set_property(
    path: *const u8,
    path_size: usize,
    data: *const u8,
    size: usize,
) -> Status {
    note("proxy_set_property");
    let (path, value) = unsafe { (text(path, path_size), bytes(data, size)) };
    host(|vm| {
        let context = vm.context();
        match vm.streams.get_mut(&context) {
            Some(stream) => stream.state.insert(path, value),
            None => return Status::NotFound,
        };
        Status::Ok
    })
}
