//! The bus that keeps its promises: order, exact loss, bounded waiting, life.
