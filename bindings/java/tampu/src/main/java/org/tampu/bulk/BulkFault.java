package org.tampu.bulk;

/**
 * A fault that a receiver has reported.
 *
 * @param kind number of the fault in {@code spec/bulk.md}
 * @param count number of occurrences
 * @param text the words for people
 */
public record BulkFault(int kind, int count, String text) {}
