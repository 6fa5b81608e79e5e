/** Bulk data: senders and receivers of streams of large data, by the framing of {@code spec/bulk.md}. */
package org.tampu.bulk;
