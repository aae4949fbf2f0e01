package org.gristmill;

import java.util.List;
import java.util.Set;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.api.JavaUniverse;
import scala.reflect.api.Mirror;
import scala.reflect.api.Names;
import scala.reflect.api.Symbols;
import scala.reflect.api.Universe;

/**
 * Tells which of Spark's classes and methods are private to Spark. For Scala, the signatures in Spark's class files say
 * so, which Java does not see: {@code private[spark]} is public in bytecode. For Java, it is the packages that Spark's
 * API documentation leaves out.
 */
final class SparkApi {
  private static final List<String> UNDOCUMENTED = List.of("org.apache.spark.memory.", "org.apache.spark.network.",
      "org.apache.spark.shuffle.", "org.apache.spark.unsafe.");

  private final Universe universe;
  private final Mirror<?> mirror;

  SparkApi() {
    JavaUniverse java = scala.reflect.runtime.package$.MODULE$.universe();
    universe = (Universe) (Object) java; // which it is, though Java cannot see it
    mirror = (Mirror<?>) (Object) java.runtimeMirror(SparkApi.class.getClassLoader());
  }

  boolean isPrivate(String className) {
    Symbols.SymbolApi symbol = symbol(className);
    return isPrivate(symbol) || symbol.isJava() && UNDOCUMENTED.stream().anyMatch(className::startsWith);
  }

  /** True if all methods of this name are private. */
  boolean isPrivate(String className, String member) {
    Symbols.SymbolApi found = ((Symbols.ClassSymbolApi) symbol(className)).toType()
        .member((Names.NameApi) universe.TermName().apply(member));
    Set<Symbols.SymbolApi> alternatives = Set.copyOf(CollectionConverters.asJava(found.alternatives()));
    return !alternatives.isEmpty() && alternatives.stream().allMatch(this::isPrivate);
  }

  private boolean isPrivate(Symbols.SymbolApi symbol) {
    return symbol.isPrivate() || symbol.privateWithin() != universe.NoSymbol();
  }

  /** A name that ends with a dollar sign is that of a Scala object. */
  private Symbols.SymbolApi symbol(String className) {
    return className.endsWith("$")
        ? ((Symbols.ModuleSymbolApi) (Object) mirror.staticModule(className.substring(0, className.length() - 1))).moduleClass()
        : (Symbols.SymbolApi) (Object) mirror.staticClass(className);
  }
}
