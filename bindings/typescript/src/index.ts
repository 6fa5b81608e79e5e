/**
 * Logs, events and questions of Tampu, over the gateway of a hub (`spec/wire/gateway.md`).
 *
 * ```ts
 * const session = await Session.connect("http://127.0.0.1:8080", { token });
 * for await (const item of session.logs({ since: "2026-11-21T08:00:00Z" })) {
 *   if (item.kind === "record") console.log(item.record.level, item.record.message);
 * }
 * ```
 * Times are `bigint` in nanoseconds, because a number ends at 2^53.
 */
export { Failure, BadBytes } from "./failure.js";
export { dateOf, now, timeOf, timeText, type Nanos } from "./time.js";
export { Session, type Part } from "./session.js";
export { Service, type Question, type ReadOptions, type ServiceHandler, type ServiceOptions } from "./service.js";
export type { ConnectOptions, Socket, Welcome } from "./link.js";
export { Publisher, type AttributeDeclaration, type Receipt, type TopicDeclaration } from "./publisher.js";
export {
  EventSubscription, LogSubscription, Subscription, TopicSubscription, type AttributeInfo, type EventItem, type EventOptions, type From, type Gap, type Life, type LogItem, type StreamInfo, type TopicItem,
  type TopicOptions,
} from "./subscription.js";
export type { Missed } from "./progress.js";
export { decodeLogBatch, recordLine, LEVELS, type Datum, type Level, type LogRecord, type RecordId } from "./log.js";
export { encodeLogBatch } from "./log_batch.js";
export { Logger, type LogData, type LoggerOptions } from "./logger.js";
export {
  decodeEvent, encodeReading, scalar, spectrum, DATA_TYPES, FORMATS, KINDS, QUALITIES, STATES, type Cause, type DataType, type Elements, type EventKind, type EventReading, type Format,
  type Quality, type Reading, type Value,
} from "./event.js";
export { BulkControl, bulkOffers, type BulkOffer, type OpenSettings } from "./bulk.js";
export { BulkReceiverOffer, BulkSenderOffer, OfferedFlow, type BulkOrder, type OpenedReceiver, type ReceiverOptions, type SenderOptions } from "./bulk_offer.js";
export { decodeBatch, type Batch } from "./batch.js";
