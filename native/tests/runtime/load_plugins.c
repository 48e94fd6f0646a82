/* Loads each library of the command line with dlopen, as engines load their extensions, and calls
 * its plugin_main. All stay loaded. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char** paths) {
  for (int i = 1; i < count; ++i) {
    void* const library = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    int (*plugin_main)(void);
    *(void**)&plugin_main = dlsym(library, "plugin_main");
    if (plugin_main == NULL || plugin_main() != 0) return 1;
  }
  return 0;
}
