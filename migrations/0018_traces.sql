-- Where the trace of a delivery and of a decision goes on: the W3C context (`00-<trace>-<span>-<flags>`) of whoever
-- stored an event, and of what recorded an operation. Written only where traces are on; null costs nothing.

alter table /* schema */inbox_events add column trace text;
alter table /* schema */outbox_operations add column trace text;
