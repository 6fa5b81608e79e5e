package org.tampu.event;

/** One error of the stack of a reading that failed; {@code severity}: 0 warning, 1 error, 2 panic. */
public record Failure(String reason, String description, String origin, int severity) {}
