//! A client of the Apache CloudStack API: signed requests, pages, jobs, wire types and calls.
