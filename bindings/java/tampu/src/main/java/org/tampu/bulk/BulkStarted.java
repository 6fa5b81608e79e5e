package org.tampu.bulk;

/**
 * A transfer that has begun.
 *
 * @param transfer its number in this life of the flow
 * @param receivers number of receivers that take part
 * @param have number of bytes that all of them have already; see {@link BulkSender#beginAt}
 */
public record BulkStarted(long transfer, int receivers, long have) {}
