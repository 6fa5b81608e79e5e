package org.tampu.bulk;

/**
 * A start that a program is to carry out for somebody else.
 *
 * @param sender the flow to send on
 * @param parameter text for the receivers, empty by default
 * @param file name of one of the files that the program offers; null leaves the choice to the program
 */
public record BulkOrder(BulkSender sender, String parameter, String file) {}
