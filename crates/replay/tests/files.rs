//! Files of every kind, good and bad: one program, because each that links the readers takes seconds to
//! build.

mod captures;
mod classes;
mod common;
mod corpus;
mod damage;
mod faults;
mod formats;
mod inputs;
mod kernlogs;
